// Package doks is a fake of DigitalOcean's Kubernetes API. It answers the calls about clusters, so that you can run a
// client of that API, and break it, without an account, a bill or a network.
//
// An [Emulator] is an http.Handler. It keeps everything in memory, and in a file if you name one. Time comes from a
// clock that a test may set: clusters and nodes change state by that clock when a request looks at them, so nothing
// runs in the background unless [Planes] make control planes for the clusters.
//
//	cloud, err := doks.New(doks.Options{Tokens: []string{"secret"}})
//	server := httptest.NewServer(cloud)
//	client, err := godo.New(oauthClient, godo.SetBaseURL(server.URL))
//
// The [Emulator.Journal] records what each request did; a [Fault] makes requests go wrong; [Emulator.Interrupt] runs
// a test's code right before and right after the effect of a call.
//
// Besides the API under /v2 there is a control API under /emulator, which needs no token and answers only requests
// for loopback hosts:
//
//	GET, DELETE       /emulator/journal                 read or empty the journal
//	GET, POST, DELETE /emulator/faults                  read, add or remove faults
//	GET               /emulator/clusters                all clusters, on one page
//	DELETE            /emulator/clusters/ID             remove one at once
//	POST              /emulator/clusters/ID/state       {"state": "degraded", "message": "..."}
//	POST              /emulator/clusters/ID/resources   {"volumes": ["name"], ...}: what its users made
//	GET               /emulator/leftovers               what deleted clusters left behind, and would be paid for
package doks
