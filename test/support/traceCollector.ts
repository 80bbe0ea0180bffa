/** A collector of traces for tests: takes OTLP over gRPC and over HTTP on loopback, and keeps the spans. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveGrpc } from '#grpc/grpcServer'
import { otlpProto } from '#grpc/proto/otlp'
import { loadService, type ServiceMethod } from '#grpc/protoMessage'

export interface CollectedSpan {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  /** Empty: it begins a trace. */
  readonly parentSpanId: string
  readonly startNs: bigint
  readonly endNs: bigint
  readonly attributes: Readonly<Record<string, string>>
  readonly error: string | undefined
}

export interface TraceCollector {
  readonly endpoint: string
  readonly spans: readonly CollectedSpan[]
  close(): Promise<void>
}

const service = 'opentelemetry.proto.collector.trace.v1.TraceService'

export async function startGrpcCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = []
  const methods = {
    Export: (request: Exported) => {
      spans.push(...spansOf(request))
      return {}
    },
  }
  const server = await serveGrpc('127.0.0.1', 0, {
    services: [{ proto: otlpProto, service, methods }],
    documents: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
    maxRequestBytes: 4 << 20,
    maxConcurrentStreams: 10,
  })
  return { endpoint: `127.0.0.1:${server.port}`, spans, close: () => server.close() }
}

export async function startHttpCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = []
  const { request: codec } = loadService(otlpProto, service).get('Export') as ServiceMethod
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const isRight = request.method === 'POST' && request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf'
    if (isRight) spans.push(...spansOf(codec.decode(Buffer.concat(parts)) as Exported))
    response.writeHead(isRight ? 200 : 404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()))
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, close }
}

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string; readonly intValue: number }
}

interface Exported {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly ExportedSpan[] }[]
  }[]
}

interface ExportedSpan {
  readonly name: string
  readonly traceId: Buffer
  readonly spanId: Buffer
  readonly parentSpanId: Buffer
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code: number; readonly message: string } | null
}

function spansOf({ resourceSpans }: Exported): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const from = textsOf(resource.attributes)['service.name'] ?? ''
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => collected(from, span)))
  })
}

function collected(from: string, span: ExportedSpan): CollectedSpan {
  return {
    service: from,
    name: span.name,
    traceId: span.traceId.toString('hex'),
    spanId: span.spanId.toString('hex'),
    parentSpanId: span.parentSpanId.toString('hex'),
    startNs: BigInt(span.startTimeUnixNano),
    endNs: BigInt(span.endTimeUnixNano),
    attributes: textsOf(span.attributes),
    error: span.status?.code === 2 ? span.status.message : undefined,
  }
}

function textsOf(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue || String(value.intValue)]))
}
