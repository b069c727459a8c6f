"""What the services of all records share: bulk requests, lists, pages and locks."""
