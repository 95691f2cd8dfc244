package stage

import (
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/config"
)

// Audience is what the controller expects id_tokens to be made for, Project
// the only project that its rules let in.
const (
	Audience = "https://sluice.example.com"
	Project  = 42
)

// Issuer signs id_tokens as GitLab does.
type Issuer struct {
	Override bool // the rule allows what is harsher than the fleet's own policy
	server   *mockoidc.MockOIDC
}

// NewIssuer starts one on loopback.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	server, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown() })
	return &Issuer{server: server}
}

// Token is a token of job on the protected branch main; claims replace what it
// says (nil removes one).
func (i *Issuer) Token(t *testing.T, job int64, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	all := jwt.MapClaims{
		"iss": i.server.Issuer(), "aud": Audience, "sub": "project_path:acme/runners:ref_type:branch:ref:main",
		"iat": now.Unix(), "nbf": now.Add(-5 * time.Second).Unix(), "exp": now.Add(2 * time.Hour).Unix(), "jti": "jti-" + strconv.FormatInt(job, 10),
		"project_id": strconv.Itoa(Project), "project_path": "acme/runners", "namespace_id": "7", "namespace_path": "acme",
		"pipeline_id": "1001", "pipeline_source": "push", "job_id": strconv.FormatInt(job, 10), "ref": "main", "ref_type": "branch",
		"ref_path": "refs/heads/main", "ref_protected": "true", "user_login": "ada", "runner_id": 999999, "runner_environment": "self-hosted",
	}
	for name, value := range claims {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	token, err := i.server.Keypair.SignJWT(all)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// let makes a configuration let its jobs recreate VMs.
func (i *Issuer) let(c *config.Config) {
	c.Server.OIDC = []config.Issuer{{Issuer: i.server.Issuer(), Audience: Audience}}
	allow := []string{"recreate"}
	if i.Override {
		allow = append(allow, "override")
	}
	c.Access = []config.AccessRule{{
		Claims: map[string]config.Claim{"project_id": {{Text: strconv.Itoa(Project)}}}, Allow: allow, Fleets: []string{Fleet},
		MaxCap: "30m",
	}}
}
