"""The endpoint tables: views introduce schemas to services. Blueprints never import each other."""
