package doks_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/digitalocean/godo"
	"golang.org/x/oauth2"

	"example.com/operator-workshop/doks"
)

// The reply to a create request is lost: the client sees an error, but the cluster exists.
func Example() {
	cloud, err := doks.New(doks.Options{
		Tokens: []string{"secret"},
		Faults: []doks.Fault{{Method: "POST", Path: "/v2/kubernetes/clusters", Kind: doks.FaultDrop, After: true}},
	})
	if err != nil {
		panic(err)
	}
	defer cloud.Close()
	server := httptest.NewServer(cloud)
	defer server.Close()

	ctx := context.Background()
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "secret"})
	client, err := godo.New(oauth2.NewClient(ctx, token), godo.SetBaseURL(server.URL))
	if err != nil {
		panic(err)
	}
	_, _, err = client.Kubernetes.Create(ctx, request("demo", 2))
	fmt.Println("error:", err != nil)
	clusters, _, err := client.Kubernetes.List(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(clusters[0].Name, clusters[0].Status.State)
	// Output:
	// error: true
	// demo running
}

// BenchmarkGet gets one of 100 clusters through godo and a loopback connection.
func BenchmarkGet(b *testing.B) {
	cloud, err := doks.New(doks.Options{Tokens: []string{fullToken}})
	if err != nil {
		b.Fatal(err)
	}
	defer cloud.Close()
	server := httptest.NewServer(cloud)
	defer server.Close()
	client, err := godo.New(oauth2.NewClient(b.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: fullToken})), godo.SetBaseURL(server.URL))
	if err != nil {
		b.Fatal(err)
	}
	var id string
	for i := range 100 {
		made, _, err := client.Kubernetes.Create(b.Context(), request(fmt.Sprintf("demo-%d", i), 1))
		if err != nil {
			b.Fatal(err)
		}
		id = made.ID
	}
	for b.Loop() {
		if _, _, err := client.Kubernetes.Get(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
