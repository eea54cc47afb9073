"""The dashboard: pages for the owner's browser, behind the guard of the HTTP application.

How a page is made:

* A page that lists rows and has forms is one `Page` in `tables.PAGES`: operations give its columns, forms, choices and
  help. Nothing else is written.
* A crafted page is a plain function `handler(shell, ask) -> Response`, declared by `@route(PATH, "GET", link=(GROUP,
  TITLE))`, in a module that `app.CRAFTED` names, in the order of the navigation. It runs in a worker thread. The
  links of a group are shown in this order, the groups in that of `shell.GROUPS`. `Ask` has `query`, `form` (both may
  hold a name several times), `path` (its parameters), `is_fragment`, `asked(NAMES)` (arguments as texts), and `here`
  and `back_to(PAGES)` (the address to come back to).
* `shell.call(WORDS, given)` calls an operation as the owner, with text for every argument, and raises NotebookError;
  `shell.tried(WORDS, given)` returns the answer and the error. Every action is an operation; what a handler raises
  becomes a page in the common words.
* `shell.page(ask, TEMPLATE, **values)` renders a template that extends layout.html and fills its block `main`. For a
  request that accepts text/fragment it is the block alone. Autoescape is on. In templates: `static(NAME)`, filters
  `cell` (any value as text, a time in the notebook's zone), `note_href` (a path's page) and `markdown` (a note's text),
  and the macros of parts.html (`field`, `hidden`, `act`, `value`, `table`, `trouble`, `notices`).
* `shell.done(TO, MESSAGE, warnings=…, undo=Undo(ACTION, FIELDS))` answers a form that has done its work: it
  redirects to TO, where the message is shown with a button that undoes it.

In the browser (static/app.js): a form with method post is sent in place, and of the answer each element with
`data-live` and an id takes the place of the one in the page; without such elements, main does. `data-live` elements are
also fetched again when the index changes, except one in which somebody types. A form with `data-plain` is left alone.
A link with `data-swap` puts the new part in place of the `data-live` one that it is in (static/notes.js).
What takes a while is a page of its own, whose address an element has as `data-later`: it is fetched into the element
when the page is shown, and after each action; the element holds a link to it.
Without JavaScript the same forms and links work. Scripts and styles come from static/ only: the pages' policy forbids
anything inline and anything from elsewhere.
"""
