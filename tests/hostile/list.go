// Lists tar archives with Go's archive/tar, which containerd, Docker, Podman and umoci use for layers. It prints a line of JSON
// for each archive.
//
// Standard input: for each archive its length (8 bytes, little-endian) and its bytes.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
)

type seen struct {
	Kind    string   `json:"kind"`
	Path    []int    `json:"path"`
	Target  []int    `json:"target"`
	Device  [2]int64 `json:"device"`
	Content []int    `json:"content"`
}

var kinds = map[byte]string{
	tar.TypeLink:    "h",
	tar.TypeSymlink: "l",
	tar.TypeChar:    "c",
	tar.TypeBlock:   "b",
	tar.TypeDir:     "d",
	tar.TypeFifo:    "p",
}

// raw converts bytes to numbers, because encoding/json writes bytes as base64.
func raw(data []byte) []int {
	numbers := make([]int, 0, len(data))
	for _, it := range data {
		numbers = append(numbers, int(it))
	}
	return numbers
}

func entry(reader *tar.Reader, header *tar.Header) (seen, error) {
	kind, known := kinds[header.Typeflag]
	if !known {
		kind = "f"
	}
	content, err := io.ReadAll(reader)
	return seen{
		Kind:    kind,
		Path:    raw([]byte(header.Name)),
		Target:  raw([]byte(header.Linkname)),
		Device:  [2]int64{header.Devmajor, header.Devminor},
		Content: raw(content),
	}, err
}

func listing(data []byte) ([]seen, error) {
	reader := tar.NewReader(bytes.NewReader(data))
	found := []seen{}
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		one, err := entry(reader, header)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	input, output := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	written := json.NewEncoder(output)
	for {
		var length uint64
		if err := binary.Read(input, binary.LittleEndian, &length); err == io.EOF {
			break
		} else {
			must(err)
		}
		data := make([]byte, length)
		_, err := io.ReadFull(input, data)
		must(err)
		if found, err := listing(data); err == nil {
			must(written.Encode(found))
		} else {
			must(written.Encode(err.Error()))
		}
	}
	must(output.Flush())
}
