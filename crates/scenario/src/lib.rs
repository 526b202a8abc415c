//! What to do: the scenario file, the crowd, arrivals, objectives, consent, the plan.
