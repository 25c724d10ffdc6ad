// room opens here
