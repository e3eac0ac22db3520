"""Configurations that refuse what they do not know, in one sentence."""

import json
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class ConfigError(ValueError):
    """What is wrong with a configuration, in one sentence.

    Args:
        problem: The sentence, without its subject if `where` names it.
        where: The keys that lead to the wrong value.
    """

    def __init__(self, problem: str, where: tuple[str, ...] = ()) -> None:
        super().__init__(f"`{'.'.join(where)}` {problem}" if where else problem)
        self.problem, self.where = problem, where


class Config(BaseModel):
    """Unknown keys and wrong types are refused; nothing changes after construction."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self._first_problem(error) from None

    @classmethod
    def _first_problem(cls, error: ValidationError) -> ConfigError:
        first = error.errors()[0]
        where = tuple(str(part) for part in first["loc"])
        match first["type"]:
            case "extra_forbidden":
                known = ", ".join(cls.model_fields)
                close = get_close_matches(where[-1], cls.model_fields, n=1)
                hint = f" Did you mean `{close[0]}`?" if close else ""
                return ConfigError(f"is not a known key; known: {known}.{hint}", where)
            case "missing":
                return ConfigError("is missing.", where)
            case "value_error":
                cause = first["ctx"]["error"]
                if isinstance(cause, ConfigError) and cause.where:
                    return ConfigError(cause.problem, where + cause.where)
                return ConfigError(str(cause))
        rule = first["msg"].replace("Input should", "must")
        return ConfigError(f"{rule}, got {first['input']!r}.", where)


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """A copy as it comes back from JSON, with lists for tuples: equal before and after a trip."""
    try:
        return json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"Settings must be what JSON can hold, got {values}: {error}.") from None
