/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks STR-8: it can make streams and not wait for them. */
#define FAKE_ID "chipdock.half_stream"
#include "fake.h"

static chipdock_status CHIPDOCK_CALL half_create(chipdock_device* device,
                                                 const chipdock_stream_desc* desc,
                                                 chipdock_stream** out_stream,
                                                 chipdock_error* error) {
  (void)desc, (void)error;
  *out_stream = (chipdock_stream*)device;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL half_destroy(chipdock_stream* stream, chipdock_error* error) {
  (void)stream, (void)error;
  return CHIPDOCK_OK;
}

static const chipdock_stream_api kStream = {CHIPDOCK_TABLE(STREAM, stream),
                                            half_create,
                                            half_destroy,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};

FAKE_PLUGIN(FAKE_TABLE("stream", &kStream))
