/**
 * What the scalers ask: a program with the lengths of queues, which answers in JSON (metrics-api), as Prometheus' text (which Prometheus reads), and over gRPC
 * (external). Without Debian's Prometheus the program itself answers the query, in the form of Prometheus' HTTP interface.
 */
import { existsSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import path from 'node:path'
import { type GrpcServer, serveGrpc } from '#grpc/grpcServer'
import { Prometheus } from '../../e2e/support/prometheus.ts'
import { freePort } from '../support/program.ts'
import { perReplica } from './objects.ts'

const { WORK = '' } = process.env
const host = '127.0.0.1'
export const prometheusQuery = 'sum(queue_length{queue="prometheus"})'

/** Upstream: kedacore/keda pkg/scalers/externalscaler/externalscaler.proto (2.21.0), without the numbers that are doubles. */
const externalScalerProto = `
package externalscaler;
service ExternalScaler {
  rpc IsActive(ScaledObjectRef) returns (IsActiveResponse);
  rpc GetMetricSpec(ScaledObjectRef) returns (GetMetricSpecResponse);
  rpc GetMetrics(GetMetricsRequest) returns (GetMetricsResponse);
}
message ScaledObjectRef { string name = 1; string namespace = 2; map<string, string> scalerMetadata = 3; }
message IsActiveResponse { bool result = 1; }
message GetMetricSpecResponse { repeated MetricSpec metricSpecs = 1; }
message MetricSpec { string metricName = 1; int64 targetSize = 2; }
message GetMetricsRequest { ScaledObjectRef scaledObjectRef = 1; string metricName = 2; }
message GetMetricsResponse { repeated MetricValue metricValues = 1; }
message MetricValue { string metricName = 1; int64 metricValue = 2; }
`

interface ScaledObjectRef {
  readonly scalerMetadata: Readonly<Record<string, string>>
}
interface GetMetricsRequest {
  readonly scaledObjectRef: ScaledObjectRef
  readonly metricName: string
}

export interface Queues {
  /** The address of all queues in JSON: `{"NAME": LENGTH}`. */
  readonly url: string
  readonly prometheusUrl: string
  /** `HOST:PORT` of the external scaler; the scaler's metadata name the queue. */
  readonly externalAddress: string
  set(queue: string, length: number): void
  stop(): Promise<void>
}

export async function startQueues(): Promise<Queues> {
  const lengths = new Map<string, number>()
  const port = await freePort()
  const address = `${host}:${port}`
  const server = createServer((request, response) => answer(request, response, lengths)).listen(port, host)
  const prometheus = existsSync('/usr/bin/prometheus') ? await startPrometheus(address) : undefined
  const external = await serveExternal(lengths)
  return {
    url: `http://${address}/queues.json`,
    prometheusUrl: prometheus?.url ?? `http://${address}`,
    externalAddress: `${host}:${external.port}`,
    set: (queue, length) => lengths.set(queue, length),
    stop: async () => {
      await Promise.all([prometheus?.stop(), external.close()])
      server.close()
      server.closeAllConnections()
    },
  }
}

function startPrometheus(target: string): Promise<Prometheus> {
  const job = { job_name: 'queues', scrape_interval: '1s', scrape_timeout: '1s', static_configs: [{ targets: [target] }] }
  return Prometheus.start(path.join(WORK, 'prometheus'), { scrape_configs: [job] })
}

function answer(request: IncomingMessage, response: ServerResponse, lengths: ReadonlyMap<string, number>): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', `http://${host}`)
  const json = (value: object, status = 200) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  if (pathname === '/queues.json') json(Object.fromEntries(lengths))
  else if (pathname === '/metrics') {
    const samples = [...lengths].map(([queue, length]) => `queue_length{queue="${queue}"} ${length}\n`)
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(`# TYPE queue_length gauge\n${samples.join('')}`)
  } else if (pathname === '/api/v1/query' && searchParams.get('query') === prometheusQuery) {
    const result = [{ metric: {}, value: [Date.now() / 1000, String(lengths.get('prometheus') ?? 0)] }]
    json({ status: 'success', data: { resultType: 'vector', result } })
  } else json({ status: 'error', errorType: 'bad_data', error: `${request.url}: unknown` }, 400)
}

function serveExternal(lengths: ReadonlyMap<string, number>): Promise<GrpcServer> {
  const lengthOf = ({ scalerMetadata }: ScaledObjectRef) => lengths.get(scalerMetadata.queue ?? '') ?? 0
  const methods = {
    IsActive: (ref: ScaledObjectRef) => ({ result: lengthOf(ref) > 0 }),
    GetMetricSpec: () => ({ metricSpecs: [{ metricName: 'queue', targetSize: perReplica }] }),
    GetMetrics: ({ scaledObjectRef, metricName }: GetMetricsRequest) => ({ metricValues: [{ metricName, metricValue: lengthOf(scaledObjectRef) }] }),
  }
  return serveGrpc(host, 0, {
    services: [{ proto: externalScalerProto, service: 'externalscaler.ExternalScaler', methods }],
    maxRequestBytes: 1024 * 1024,
    maxConcurrentStreams: 100,
    documents: () => ({ status: 404, contentType: 'text/plain', body: '404 page not found\n' }),
  })
}
