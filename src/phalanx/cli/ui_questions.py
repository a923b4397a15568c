"""Questions of the page that need simulations: when a gang starts."""

from collections.abc import Callable, Mapping

from phalanx.ui.questions.desk import Question

QUESTIONS: Mapping[str, Callable[..., Question]] = {}
