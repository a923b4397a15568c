"""What sessions leave on objects, said as writes like those of controllers: statuses, requests for binds, plans behind gates."""
