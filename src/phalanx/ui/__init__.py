"""A page to look at: a cluster, its queues, why gangs wait, and what would help, in a browser.

    scope.py            what one reader may see
    gang_facts.py       what is worth knowing of a gang besides its row
    seen.py             a cluster as it was read at one moment, which all views are made from
    source.py           where that comes from: a cluster, a recording, files; the protocol of all of them
    views/              one file each: a cluster in, plain data out
    questions/          what takes a session or more to answer, in a process of its own
    serving/            HTTP: documents, events of the server, files, and who may ask
    static/             the page itself: HTML, a style sheet, ES modules

Sentences are those of the command line: `explain`, `whatif` and `stepping` make them, and the page only shows them.
"""

PATH = "/ui"
"""Where it is served."""
API = f"{PATH}/api"
"""Where it asks for what it shows."""
