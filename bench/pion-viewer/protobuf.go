package main

import (
	"encoding/binary"
	"errors"
)

// The wire types of protobuf that LiveKit's signalling has.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var errCutOff = errors.New("protobuf: a message that is cut off")

// field is a field of a message: a varint, or bytes that are a string or a message.
type field struct {
	number int
	varint uint64
	bytes  []byte
}

// fields calls each for every field of a message, in order, until it fails. Fields of fixed width are passed over.
func fields(message []byte, each func(field) error) error {
	for len(message) > 0 {
		key, size := binary.Uvarint(message)
		if size <= 0 {
			return errCutOff
		}
		message = message[size:]
		f := field{number: int(key >> 3)}
		switch key & 7 {
		case wireVarint:
			if f.varint, size = binary.Uvarint(message); size <= 0 {
				return errCutOff
			}
			message = message[size:]
		case wireBytes:
			length, size := binary.Uvarint(message)
			if size <= 0 || length > uint64(len(message)-size) {
				return errCutOff
			}
			f.bytes = message[size : size+int(length)]
			message = message[size+int(length):]
		case wireFixed64, wireFixed32:
			width := 8
			if key&7 == wireFixed32 {
				width = 4
			}
			if len(message) < width {
				return errCutOff
			}
			message = message[width:]
			continue
		default:
			return errors.New("protobuf: an unknown wire type")
		}
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// appendField appends a field of bytes: a string or a message.
func appendField(message []byte, number int, value []byte) []byte {
	message = binary.AppendUvarint(message, uint64(number)<<3|wireBytes)
	message = binary.AppendUvarint(message, uint64(len(value)))
	return append(message, value...)
}

func appendVarintField(message []byte, number int, value uint64) []byte {
	message = binary.AppendUvarint(message, uint64(number)<<3|wireVarint)
	return binary.AppendUvarint(message, value)
}
