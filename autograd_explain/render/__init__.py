"""The one stage that knows languages and screens.

`Explanation(diagnosis, language, detail, texts)` is what the pipeline makes of a diagnosis;
`topic_of(entry, language)` is the whole story of a cause without a live program.  Both show
themselves: `print()` in colour, `to_text()`, `to_html()`, `to_markdown()`, a mimebundle.
"""

from .explanation import Explanation
from .texts import LANGUAGES, accept
from .topic import Topic, topic_of

__all__ = ["LANGUAGES", "Explanation", "Topic", "accept", "topic_of"]
