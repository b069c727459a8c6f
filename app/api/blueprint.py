"""The blueprint class of the API and of plugins, which customizes that of flask-smorest.

It adds authentication, shared schema instances, operation IDs and the error codes of operations.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import flask_smorest
from flask import Flask
from flask.blueprints import BlueprintSetupState

from app.api.authentication import authenticate_request
from app.api.dialect import NATIVE
from app.api.openapi.operations import describe_file, describe_operation
from app.api.request_parser import ArgumentParser, apply_strict_handling
from app.api.view_docs import View, document, document_rights, documented
from app.conversions.text import did_you_mean
from app.errors.codes import ERRORS
from app.schemas.loading import instance_of

Query = dict[str, Any]
"""A loaded query, which a view receives."""
Body = dict[str, Any]
"""A loaded body, which a view receives, or a body to return."""


class _Mount(BlueprintSetupState):
    """The registration of a blueprint. Extension point: ``Blueprint.make_setup_state``."""

    def add_url_rule(self, rule: str, *args: Any, **options: Any) -> None:
        """Add a route with the methods and converters of the dialect."""
        dialect = self.options.get("dialect", NATIVE)
        options["methods"] = dialect.methods(options.get("methods", ["GET"]))
        super().add_url_rule(dialect.rule(rule), *args, **options)


class Blueprint(flask_smorest.Blueprint):
    """A blueprint of the API or a plugin, with authentication.

    Args:
        public: disables authentication.
        extends_orders: declares that the views extend their orders with an OrderSerializer, or
            return no orders. The responses of all other blueprints are searched for orders.
        any_permission: accepts keys with any permission for every method.
        resource: the resource that a key must allow to use the views. By default, the first
            segment of ``url_prefix``, or the name of the blueprint.
        reads_replicas: lets the reads of the views use a replica (``app.api.replica_reads``).
        always_strict: makes all requests strict, because an ignored field would give away rights
            or money (decisions 15).
    """

    ARGUMENTS_PARSER = ArgumentParser()

    def __init__(
        self,
        *args: object,
        public: bool = False,
        any_permission: bool = False,
        extends_orders: bool = False,
        resource: str | None = None,
        reads_replicas: bool = False,
        always_strict: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.public = public
        self.any_permission = any_permission
        self.always_strict = always_strict
        self.extends_orders = extends_orders
        self.reads_replicas = reads_replicas
        segment = (self.url_prefix or "").strip("/").partition("/")[0]
        self.resource = None if public else resource or segment or self.name
        if self.resource:
            admit = partial(authenticate_request, self.resource, any_permission=any_permission)
            self.before_request(admit)
            self.before_request(apply_strict_handling)
        self._prepare_doc_cbks.append(self._prepare_shop_doc)

    def init_app(self, app: Flask, api: Any) -> None:  # as in every plugin
        """Register the blueprint. This is the ``init_app`` of a plugin with one blueprint."""
        api.register_blueprint(self)

    def make_setup_state(
        self, app: Any, options: dict[str, Any], first_registration: bool = False
    ) -> BlueprintSetupState:
        """Return the object that registers the routes of this blueprint."""
        return _Mount(self, app, options, first_registration)

    def add_url_rule(
        self, rule: str, endpoint: Any = None, view_func: Any = None, **kwargs: Any
    ) -> None:
        """Register a view. Its name in camel case becomes the operation ID."""
        first, *rest = view_func.__name__.split("_")
        document(view_func, "operation_id", first + "".join(word.title() for word in rest))
        document(view_func, "methods", kwargs.get("methods", ["GET"]))
        document(view_func, "has_variable", "<" in rule)
        document_rights(view_func)
        super().add_url_rule(rule, endpoint, view_func, **kwargs)

    def arguments(
        self, schema: object, *, needs: object = None, **kwargs: object
    ) -> Callable[[Any], Any]:
        """Load and document input with one schema instance for all requests.

        webargs would create an instance for each request and copy all of its fields.

        Args:
            needs: of plugins of 1.0; the documented errors of the view replace it.
        """
        instance = instance_of(schema) if isinstance(schema, type) else schema
        decorate: Callable[[object], object] = super().arguments(instance, **kwargs)
        return decorate

    def register_views_in_doc(self, api: Any, *args: Any, **kwargs: Any) -> None:
        """Describe the views, when the OpenAPI document is first used."""
        api.describe_later(partial(super().register_views_in_doc, api, *args, **kwargs))

    @staticmethod
    def errors(*codes: str) -> Callable[[View], View]:
        """Document the error codes of an operation, in addition to the common error codes."""
        if unknown := [code for code in codes if code not in ERRORS]:
            raise ValueError(f"unknown error code {unknown[0]}{did_you_mean(unknown[0], ERRORS)}")

        def decorate(view: View) -> View:
            found = {code: ERRORS[code][0] for code in codes}
            return document(view, "codes", documented(view, "codes", {}) | found)

        return decorate

    @staticmethod
    def errors_as(status: int, *codes: str) -> Callable[[View], View]:
        """Document error codes that also have another status in this operation (spec 4.2)."""

        def decorate(view: View) -> View:
            more = [*documented(view, "codes_as", []), *((code, status) for code in codes)]
            return document(view, "codes_as", more)

        return decorate

    @staticmethod
    def rights(*codes: str) -> Callable[[View], View]:
        """Declare the rights of an operation whose errors do not name them, by their error codes.

        Without them, a list is empty and the items of a bulk request fail. One right is enough.
        Without codes: everybody may run it for what belongs to them.
        """
        return lambda view: document(view, "rights", codes)

    @staticmethod
    def also_requires(*resources: str) -> Callable[[View], View]:
        """Require a key that allows these resources, in addition to that of the blueprint."""
        return lambda view: document(view, "resources", resources)

    @staticmethod
    def also_returns(*media_types: str) -> Callable[[View], View]:
        """Document further media types of a successful response, as text."""
        return lambda view: document(view, "media_types", media_types)

    @staticmethod
    def accepts_file(*media_types: str) -> Callable[[View], View]:
        """Document that the body of a request is a file of one of these media types."""
        return lambda view: document(view, "accepted", media_types)

    @staticmethod
    def status(event: str) -> Callable[[View], View]:
        """Document the status of an event, which depends on the dialect."""
        return lambda view: document(view, "status_events", [event])

    def _prepare_shop_doc(
        self, doc: dict[str, Any], doc_info: dict[str, Any], *, api: Any, method: str, **_: Any
    ) -> dict[str, object]:
        """Complete the documentation of an operation. flask-smorest calls it for each method."""
        describe_operation(
            doc,
            doc_info,
            method,
            api.dialect,
            is_public=self.public,
            may_use_replica=self.reads_replicas,
        )
        describe_file(doc, doc_info.get("accepted", ()))
        return doc
