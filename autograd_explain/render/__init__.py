"""The one stage that knows languages and screens.

`Explanation(diagnosis, language, detail)` is what the pipeline makes of a diagnosis;
`render_topic(entry, language)` is the whole story of a cause without a live program.
"""

from .explanation import Explanation
from .texts import LANGUAGES, accept

__all__ = ["LANGUAGES", "Explanation", "accept"]
