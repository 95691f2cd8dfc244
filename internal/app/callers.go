package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// tokens are the callers of server.tokens.
func (a *App) tokens() (*access.Tokens, error) {
	var list []access.Token
	for _, t := range a.Config.Server.Tokens {
		list = append(list, access.Token{Name: t.Name, SHA256: t.SHA256, Expires: t.Expires})
	}
	known, err := access.NewTokens(list, clock{})
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "server.tokens: %w", err)
	}
	return known, nil
}

// pipelines lets CI jobs in by id_token; nil where no issuer is configured.
func (a *App) pipelines() *access.Pipelines {
	s, ok := a.journal.(*store.Store)
	if !ok || !a.Role.works() || len(a.Config.Server.OIDC) == 0 {
		return nil
	}
	o := access.Options{Store: s, Clock: clock{}, Log: a.log}
	for _, i := range a.Config.Server.OIDC {
		o.Issuers = append(o.Issuers, access.Issuer{URL: i.Issuer, Audience: i.Audience})
	}
	for i, r := range a.Config.Access {
		o.Rules = append(o.Rules, rule(r))
		if r.Claims["project_id"] == nil && r.Claims["namespace_id"] == nil {
			a.log.WarnContext(context.Background(), "an access rule goes by paths alone: they can be renamed, and then be somebody else's; project_id and namespace_id stay",
				"rule", fmt.Sprintf("access[%d]", i))
		}
	}
	return access.NewPipelines(o)
}

func rule(r config.AccessRule) access.Rule {
	out := access.Rule{Issuer: r.Issuer, Fleets: r.Fleets, MaxCap: r.MaxCap.D(), VMs: patterns(r.VMs)}
	for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
		out.Claims = append(out.Claims, access.Condition{Claim: name, Any: patterns(r.Claims[name])})
	}
	for _, action := range r.Allow {
		out.Allow = append(out.Allow, access.Action(action))
	}
	return out
}

func patterns(list []config.Text) []access.Pattern {
	var out []access.Pattern
	for _, t := range list {
		out = append(out, access.Pattern(t))
	}
	return out
}

func refusals() []string {
	var list []string
	for _, reason := range access.Reasons() {
		list = append(list, string(reason))
	}
	return list
}
