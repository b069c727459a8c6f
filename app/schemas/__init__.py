"""The wire format. Schemas convert and describe values. Services check the rules of the shop."""
