/**
 * The client of a kubelet that has no API server (L3): every list is empty, watches send nothing, and writes fail. Only static pods run, which
 * must not refer to objects of the API. Upstream: standalone mode, cmd/kubelet/app/server.go (v1.36), where the client is nil.
 */

import { StatusError } from '#api/machinery/status'
import { aborted } from '#base/orAborted'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'

export function standaloneClient(): Client {
  return createClient({
    request: async ({ method, path, query }) => {
      // Only requests of lists have a limit, which tells them from requests of objects.
      if (method === 'GET' && query && 'limit' in query) return { status: 200, body: { metadata: {}, items: [] }, warnings: [] }
      if (method === 'GET') throw new StatusError('NotFound', `there is no API server that could have ${path}`)
      throw new StatusError('ServiceUnavailable', 'there is no API server')
    },
    watch: async function* (_request, signal) {
      await aborted(signal)
      yield []
    },
  })
}
