package worlds

// deregistrationSabotages are of design.md section 6's guards.
func deregistrationSabotages() []sabotage {
	return []sabotage{
		{
			"a deregistration comes before the orphan watch", "internal/engine/deregister.go",
			"\tif !op.Phase.Finished() || r.now().Before(r.c.CreatedAt.Add(copyShows)) {\n\t\treturn \"\", false, nil\n",
			"\tif op.Kind == fleet.KindDelete {\n\t\treturn \"\", true, nil\n", "accounts",
		},
		{
			"a deregistration does not ask whose system_id it is", "internal/engine/deregister.go",
			`case vm.SystemID != "" && vm.SystemID == s.Old.SystemID:`,
			"case false:", "token",
		},
		{
			"an entry is removed by its number alone", "internal/fleet/entry.go",
			"\tif s.CreatedAt.IsZero() || s.At.IsZero() {\n\t\treturn \"GitLab does not say when it was created\"\n",
			"\tif true {\n\t\treturn \"\"\n", "entry",
		},
	}
}
