"""Writing of converted records: IDs, the record map and bulk statements."""
