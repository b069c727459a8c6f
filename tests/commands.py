"""Commands of the app, run within the tests."""


def run(app, *arguments, **options):
    """Run a command, and return its result."""
    return app.test_cli_runner().invoke(args=[*map(str, arguments)], **options)


def succeed(app, *arguments, **options):
    """Run a command that must succeed, and return its result."""
    result = run(app, *arguments, **options)
    assert result.exit_code == 0, result.output
    return result
