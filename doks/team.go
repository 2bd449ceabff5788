package doks

import "net/http"

const (
	// accountPattern is the pattern of the only call outside /v2/kubernetes.
	accountPattern = "account"
	// defaultTeam is the UUID of the team if none is chosen.
	defaultTeam = "7d9c3f0e-52b1-4c86-9a3d-1f6b8e2047c5"
	// personUUID is the UUID of the person who made the tokens. A person may be in several teams.
	personUUID = "2e84b6d1-9f37-4a0c-8c15-d3706a5b9e42"
)

// getAccount returns the account of the person who made the token, with the token's team. Tokens and clusters belong to
// a team, not to a person.
func (e *Emulator) getAccount(*exchange) reply {
	limit := e.options.DropletLimit
	return reply{status: http.StatusOK, body: map[string]any{"account": map[string]any{
		"droplet_limit": limit, "floating_ip_limit": limit, "name": "Learner", "email": "learner@example.com", "email_verified": true,
		"uuid": personUUID, "status": "active", "status_message": "",
		"team": map[string]any{"uuid": e.options.Team, "name": "Workshop"},
	}}}
}
