/**
 * Sends spans to a collector by OTLP (L5), over gRPC or as protobuf over HTTP, in batches. Memory is bounded: what a slow or absent collector does not
 * take is dropped and counted. Upstream: the batch processor of OpenTelemetry's SDK with its defaults, which component-base/tracing uses.
 */
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { deadlineScope } from '#base/abortScope'
import type { Clock, Timer } from '#base/clock'
import type { Logger } from '#base/log'
import type { Counter, Metrics } from '#base/metrics'
import { type OtlpForm, otlpRequest } from '#base/otlp'
import type { Span } from '#base/traceContext'
import { skiffVersion } from '#base/version'
import { connectGrpc } from '#grpc/grpcConnection'
import { otlpProto } from '#grpc/proto/otlp'
import { loadService, type ServiceMethod } from '#grpc/protoMessage'

export interface ExporterTools {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

export interface SpanExporter {
  /** Takes a span; never waits and never throws. */
  end(span: Span): void
  /** Sends what is left for 3 seconds at most; drops and counts the rest. */
  close(): Promise<void>
}

const defaultEndpoint = 'localhost:4317'
const mostWaiting = 2048
const batchSize = 512
const batchAfterMs = 5000
const sendWithinMs = 10_000
const closeWithinMs = 3000

const form: OtlpForm = { scope: { name: 'skiff', version: skiffVersion }, id: (hex) => Buffer.from(hex, 'hex') }

/** Sends one encoded request. */
interface Wire {
  send(request: Uint8Array, signal: AbortSignal): Promise<void>
  close(): void
}

/** @param endpoint see TracingSettings */
export function createOtlpExporter(endpoint = defaultEndpoint, tools: ExporterTools): SpanExporter {
  const method = loadService(otlpProto, 'opentelemetry.proto.collector.trace.v1.TraceService').get('Export') as ServiceMethod
  const wire = /^https?:\/\//.test(endpoint) ? httpWire(endpoint) : grpcWire(endpoint, method.path)
  const dropped = tools.metrics.counter({ name: 'skiff_trace_spans_dropped_total', help: 'Spans that the collector did not take in time.' })
  return new BatchExporter(wire, (spans) => method.request.encode(otlpRequest(spans, form)), dropped, tools)
}

class BatchExporter implements SpanExporter {
  readonly #wire: Wire
  readonly #encode: (spans: readonly Span[]) => Uint8Array
  readonly #dropped: Counter
  readonly #tools: ExporterTools
  #waiting: Span[] = []
  #timer: Timer | undefined
  #sending: Promise<void> | undefined
  #isBroken = false
  /** Ends the sending that `close` found under way. */
  readonly #closing = new AbortController()

  constructor(wire: Wire, encode: (spans: readonly Span[]) => Uint8Array, dropped: Counter, tools: ExporterTools) {
    this.#wire = wire
    this.#encode = encode
    this.#dropped = dropped
    this.#tools = tools
  }

  end(span: Span): void {
    if (this.#waiting.length >= mostWaiting || this.#closing.signal.aborted) {
      this.#dropped.inc()
      return
    }
    this.#waiting.push(span)
    if (this.#waiting.length >= batchSize) this.#start()
    else this.#timer ??= this.#tools.clock.timer(batchAfterMs, () => this.#start())
  }

  async close(): Promise<void> {
    const limit = this.#tools.clock.timer(closeWithinMs, () => this.#closing.abort(new Error('the collector did not take the last spans in time')))
    await this.#sending
    while (this.#waiting.length > 0 && !this.#isBroken && !this.#closing.signal.aborted) await this.#send()
    limit.cancel()
    this.#timer?.cancel()
    this.#closing.abort()
    this.#dropped.inc({}, this.#waiting.splice(0).length)
    this.#wire.close()
  }

  #start(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    do await this.#send()
    while (this.#waiting.length >= batchSize)
    if (this.#waiting.length > 0) this.#timer ??= this.#tools.clock.timer(batchAfterMs, () => this.#start())
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, batchSize)
    using limit = deadlineScope({ clock: this.#tools.clock, ms: sendWithinMs }, this.#closing.signal)
    try {
      await this.#wire.send(this.#encode(batch), limit.signal)
      this.#isBroken = false
    } catch (error) {
      this.#dropped.inc({}, batch.length)
      // Once, until it works again.
      if (!this.#isBroken) this.#tools.log.error(error, 'Spans could not be sent to the collector')
      this.#isBroken = true
    }
  }
}

function grpcWire(endpoint: string, path: string): Wire {
  const connection = connectGrpc(endpoint.replace(/^dns:\/\/+/, '').replace(/^(unix(?:-abstract)?):\/\//, '$1:'))
  return {
    send: async (request, signal) => void (await connection.unary(path, request, { timeoutMs: sendWithinMs, signal })),
    close: () => connection.close(),
  }
}

function httpWire(endpoint: string): Wire {
  const url = new URL(endpoint)
  if (url.pathname === '/') url.pathname = '/v1/traces'
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest
  return {
    async send(body, signal) {
      await new Promise<void>((resolve, reject) => {
        const headers = { 'content-type': 'application/x-protobuf', 'content-length': body.length }
        const outgoing = open(url, { method: 'POST', headers, signal }, (answer) => {
          answer.resume()
          const { statusCode = 0 } = answer
          if (statusCode >= 200 && statusCode < 300) answer.once('end', resolve)
          else reject(new Error(`the collector answered with status ${statusCode}`))
        })
        outgoing.once('error', reject)
        outgoing.end(body)
      })
    },
    close: () => {},
  }
}
