"""One scheduling session, pure: the snapshot in, the actions and plugins asked, the decisions out."""
