"""The rules of the shop: what an actor may read and write, and in which order this is checked.

In each function, the checks come first, in the specified order of errors, and the write comes last.

Nothing here reads the request or knows a schema: a view, a command, a plugin and a test call the
same functions, with the actor as an argument.
"""
