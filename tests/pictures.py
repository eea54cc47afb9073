"""`python -m tests.pictures` makes every picture of docs/pictures but flow.svg anew. None is retouched.

Those that the program draws are the same bytes each time; those of the dashboard are, with one version of the browser.
"""

from __future__ import annotations

from tests import dashboard_pictures, fact_picture, memory_picture, prompt_picture


def main() -> None:
    for picture, drawn in (
        (prompt_picture.PICTURE, prompt_picture.drawn),
        (fact_picture.PICTURE, fact_picture.drawn),
        (memory_picture.PICTURE, memory_picture.picture),
    ):
        picture.write_text(drawn(), encoding="utf-8")
    dashboard_pictures.take()


if __name__ == "__main__":
    main()
