// Prints, as JSON, the fields of the Kubernetes API types of the release it is compiled against: what they are called
// in JSON, their numbers in protobuf, their types, and how strategic merge patches treat them. It reads the struct tags
// by reflection; fields.py runs it once per release and merges what it prints.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// Types whose JSON is not their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "intOrString",
	reflect.TypeFor[metav1.Time]():                                "time",
	reflect.TypeFor[metav1.MicroTime]():                           "microTime",
	reflect.TypeFor[metav1.Duration]():                            "duration",
	reflect.TypeFor[runtime.RawExtension]():                       "raw",
	reflect.TypeFor[metav1.FieldsV1]():                            "raw",
	reflect.TypeFor[apiextensions.JSON]():                         "raw",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schemaOrArray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schemaOrBool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schemaOrStrings",
}

type marshaler interface{ Marshal() ([]byte, error) }

type table struct {
	Kinds map[string]string  `json:"kinds"`
	Types map[string][][]any `json:"types"`
}

func main() {
	types := runtime.NewScheme()
	must(scheme.AddToScheme(types))
	must(apiextensions.AddToScheme(types))
	found := table{map[string]string{}, map[string][][]any{}}
	for gvk, t := range types.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || gvk.Kind == "WatchEvent" {
			continue
		}
		found.Kinds[apiVersion(gvk)+" "+gvk.Kind] = found.add(t)
	}
	found.add(reflect.TypeFor[apiextensions.JSONSchemaProps]())
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func apiVersion(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func name(t reflect.Type) string {
	return path.Base(path.Dir(t.PkgPath())) + "." + path.Base(t.PkgPath()) + "." + t.Name()
}

// add describes a struct and everything it refers to; it returns the struct's name.
func (found *table) add(t reflect.Type) string {
	known := name(t)
	if _, done := found.Types[known]; done {
		return known
	}
	found.Types[known] = [][]any{}
	rows := [][]any{}
	for i := range t.NumField() {
		field := t.Field(i)
		if row := found.row(known, field); row != nil {
			rows = append(rows, row)
		}
	}
	found.Types[known] = rows
	return known
}

func (found *table) row(owner string, field reflect.StructField) []any {
	tag, ok := field.Tag.Lookup("protobuf")
	jsonName, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if field.Type == reflect.TypeFor[metav1.TypeMeta]() || jsonName == "-" || !field.IsExported() {
		return nil
	}
	number := 0
	if ok && tag != "-" {
		parsed, err := strconv.Atoi(strings.Split(tag, ",")[1])
		must(err)
		number = parsed
	} else {
		fmt.Fprintf(os.Stderr, "%s.%s has no protobuf number\n", owner, field.Name)
	}
	if strings.Contains(options, "inline") {
		jsonName = ""
	}
	flags := ""
	scalar := field.Type.Kind() != reflect.Pointer && field.Type.Kind() != reflect.Struct
	if scalar && strings.Contains(options, "omitempty") {
		flags = "o"
	}
	patch := field.Tag.Get("patchStrategy")
	if key := field.Tag.Get("patchMergeKey"); key != "" {
		patch += ":" + key
	}
	return []any{number, jsonName, found.describe(field.Type), flags, patch}
}

func (found *table) describe(t reflect.Type) string {
	if known, ok := special[t]; ok {
		return known
	}
	switch t.Kind() {
	case reflect.Pointer:
		return found.describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if reflect.PointerTo(t).Implements(reflect.TypeFor[marshaler]()) {
			return "items:" + found.describe(t.Elem()) // a message of its own, which holds the list
		}
		return "[]" + found.describe(t.Elem())
	case reflect.Map:
		return "{}" + found.describe(t.Elem())
	case reflect.Struct:
		return found.add(t)
	default:
		return t.Kind().String()
	}
}
