package traffic

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// acceptJSON makes the Accept header ask for JSON in place of the other encodings of objects. Parameters are kept: for
// instance, they ask for a Table, or for nothing but the metadata. Encodings of anything else are kept, too, such as
// OpenAPI's own protobuf.
func acceptJSON(header http.Header) {
	if len(header.Values("Accept")) == 0 {
		return // the API server's default is JSON
	}
	ranges := strings.Split(strings.Join(header.Values("Accept"), ","), ",")
	for i, accepted := range ranges {
		media, parameters, found := strings.Cut(accepted, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR, runtime.ContentTypeCBORSequence, runtime.ContentTypeYAML:
			ranges[i] = runtime.ContentTypeJSON
			if found {
				ranges[i] += ";" + parameters
			}
		}
	}
	header.Set("Accept", strings.Join(ranges, ","))
}
