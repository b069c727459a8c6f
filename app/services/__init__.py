"""The rules, one file a noun: guards first, in the specified order, write last.

Nothing here reads the request or knows a schema: a view, a command, a plugin and a test call the
same functions, with the actor as an argument.
"""
