// Package doks is a fake of DigitalOcean's Kubernetes API. It answers most calls about clusters, and GET /v2/account,
// so that you can run a client against it, and inject faults, without an account, a bill or a network.
//
// An [Emulator] is an http.Handler. It keeps everything in memory, and the clusters also in a file if you name one. A
// test can provide its own clock. Clusters and nodes change state by the emulator's clock when a request looks at them,
// so nothing runs in the background unless [Planes] make control planes for the clusters.
//
//	cloud, err := doks.New(doks.Options{Tokens: []string{"secret"}})
//	server := httptest.NewServer(cloud)
//	client, err := godo.New(oauthClient, godo.SetBaseURL(server.URL))
//
// [Emulator.Journal] returns what each request did. A [Fault] makes requests go wrong. [Emulator.Interrupt] runs a
// test's code right before and right after a call takes effect.
//
// Besides the API under /v2 there is a control API under /emulator, which needs no token and answers only requests
// for loopback hosts:
//
//	GET, DELETE       /emulator/journal                 read or empty the journal
//	GET, POST, DELETE /emulator/faults                  read, add or remove faults
//	GET               /emulator/clusters                all clusters, on one page
//	DELETE            /emulator/clusters/ID             remove one immediately
//	POST              /emulator/clusters/ID/state       {"state": "degraded", "message": "..."}
//	PUT               /emulator/clusters/ID/tags        {"tags": ["name"]}
//	POST              /emulator/clusters/ID/resources   {"volumes": ["name"], ...}: add resources, as users would
//	GET               /emulator/leftovers               the resources that deleted clusters left behind
package doks
