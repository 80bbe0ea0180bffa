/**
 * Counts and times what travels through a Transport (L2), under client-go's names. Upstream: client-go/tools/metrics,
 * component-base/metrics/prometheus/restclient (v1.36).
 */
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { Transport } from './transport.ts'

const buckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

/** `host` names the server in the series. A watch counts with its first events, or when it ends without any, and is not timed. */
export function meteredTransport(transport: Transport, metrics: Metrics, clock: Clock, host: string): Transport {
  const requests = metrics.counter({
    name: 'rest_client_requests_total',
    help: 'Requests, by the code of their answers, method and host.',
    labels: ['code', 'method', 'host'],
  })
  const duration = metrics.histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Seconds a request took, by verb and host',
    labels: ['verb', 'host'],
    buckets,
  })
  const count = (code: string, method = 'GET') => requests.inc({ code, method, host })
  const failed = (error: unknown, method?: string) => count(isStatus(error) ? String(error.code) : '<error>', method)
  return {
    async request(request, signal) {
      const { method } = request
      const startedMs = clock.monotonicMs()
      try {
        const answer = await transport.request(request, signal)
        count(String(answer.status), method)
        return answer
      } catch (error) {
        failed(error, method)
        throw error
      } finally {
        duration.observe((clock.monotonicMs() - startedMs) / 1000, { verb: method, host })
      }
    },
    async *watch(request, signal) {
      let isCounted = false
      const answered = () => {
        if (!isCounted) count('200')
        isCounted = true
      }
      try {
        for await (const events of transport.watch(request, signal)) {
          answered()
          yield events
        }
        answered()
      } catch (error) {
        // An error event comes in an answer whose code was 200.
        if (!isCounted) failed(error)
        throw error
      }
    },
  }
}
