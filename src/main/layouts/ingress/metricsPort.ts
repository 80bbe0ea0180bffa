/**
 * Serves the metrics of a node's ingress (L5) to programs of the node itself, as kube-proxy serves its own: on the node's loopback address, without
 * authentication. The port is that of ingress-nginx.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Component } from '#base/component'
import { aborted } from '#base/orAborted'
import type { ProcessTools } from '../processTools.ts'

const metricsAddress = { host: '127.0.0.1', port: 10_254 }

export function metricsPort({ metrics }: Pick<ProcessTools, 'metrics'>, address = metricsAddress): Component {
  return {
    name: 'ingress metrics',
    async run(signal) {
      const server = createServer((request, response) => {
        const isHealth = request.url === '/healthz'
        if (request.method !== 'GET' || (!isHealth && request.url !== '/metrics')) response.writeHead(404).end()
        else response.writeHead(200, { 'content-type': isHealth ? 'text/plain' : metrics.contentType }).end(isHealth ? 'ok' : metrics.render())
      })
      server.listen(address)
      await once(server, 'listening', { signal })
      await aborted(signal)
      server.closeAllConnections()
      server.close()
    },
  }
}
