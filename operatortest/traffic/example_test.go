package traffic_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/operatortest/traffic"
)

// Requests for Secrets get a conflict, and the API server never sees them.
func Example() {
	apiServer := httptest.NewServer(http.NotFoundHandler())
	defer apiServer.Close()
	tap := traffic.New()
	tap.SetRule(func(request traffic.Request) traffic.Action {
		if request.Resource == "secrets" {
			return traffic.Action{Answer: &traffic.Answer{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}}
		}
		return traffic.Action{}
	})
	operator, err := rest.HTTPClientFor(tap.Config(&rest.Config{Host: apiServer.URL}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range []string{"secrets/b", "configmaps/c"} {
		reply, err := operator.Get(apiServer.URL + "/api/v1/namespaces/a/" + object)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = reply.Body.Close()
	}
	for _, request := range tap.Requests() {
		fmt.Println(request.Kind(), request.Target(), request.Result())
	}
	// Output:
	// get secrets a/b 409
	// get configmaps a/c 404
}
