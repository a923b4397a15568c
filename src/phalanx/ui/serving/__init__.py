"""The page over HTTP: who may ask from where, documents made once for all readers, events, and the files of the page."""
