// Package doks is a fake of DigitalOcean's Kubernetes API: it answers the calls
// that are about clusters, so that a client of that API can be run and broken
// without an account, a bill or a network.
//
// An [Emulator] is an http.Handler. It keeps everything in memory, and in a file
// when one is named. Time comes from a clock that a test may set: clusters and
// nodes change their states by it whenever a request looks at them, so nothing
// runs in the background as long as no [Planes] stand behind the clusters.
//
//	cloud, err := doks.New(doks.Options{Tokens: []string{"secret"}})
//	server := httptest.NewServer(cloud)
//	client, err := godo.New(oauthClient, godo.SetBaseURL(server.URL))
//
// What a request did is in the [Emulator.Journal]; a [Fault] makes requests go
// wrong; [Emulator.Interrupt] runs a test's code right before and right after the
// effect of a call.
//
// Beside the API, under /v2, there is a path for the person at the controls,
// under /emulator, that needs no token and answers loopback hosts only:
//
//	GET, DELETE       /emulator/journal                 read or empty the journal
//	GET, POST, DELETE /emulator/faults                  read, add or remove faults
//	GET               /emulator/clusters                all clusters, on one page
//	DELETE            /emulator/clusters/ID             remove one at once
//	POST              /emulator/clusters/ID/state       {"state": "degraded", "message": "..."}
//	POST              /emulator/clusters/ID/resources   {"volumes": ["name"], ...}: what its users made
//	GET               /emulator/leftovers               what deleted clusters left behind, and would be paid for
package doks
