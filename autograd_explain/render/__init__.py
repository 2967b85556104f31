"""The one stage that knows languages and screens.

`Explanation(diagnosis, language, detail, texts)` is what the pipeline makes of a diagnosis;
`render_topic(entry, language)` is the whole story of a cause without a live program.  Both show
themselves: `print()` in colour, `to_text()`, `to_html()`, `to_markdown()`, a mimebundle.
"""

from .explanation import Explanation
from .texts import LANGUAGES, accept
from .topic import Topic, render_topic

__all__ = ["LANGUAGES", "Explanation", "Topic", "accept", "render_topic"]
