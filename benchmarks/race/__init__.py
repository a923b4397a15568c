"""The race: `phalanx run` beside other schedulers, on one API server, in one run, with pods as Jobs make them."""
