/**
 * Calls a driver of this process as one behind a socket (L3): messages lose what the wire does not carry, errors have Go's words, and a call ends with its deadline or
 * its signal, whatever the driver still does then.
 */
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { orAborted } from '#base/orAborted'
import { GrpcError } from '#grpc/grpcError'
import { GrpcRefusal, implementationsOf } from '#grpc/grpcService'
import type { CsiDriver } from '../server/csiTypes.ts'
import { servicesOf } from '../server/serveCsi.ts'
import { type CsiConnection, wireMethod } from './driver.ts'

const client = { metadata: () => undefined, commonName: () => undefined }
const deadlineExceeded = () => new GrpcError('DEADLINE_EXCEEDED', 'context deadline exceeded').inGoWords()

export function connectInProcess(driver: CsiDriver, clock: Clock): CsiConnection {
  const served = implementationsOf(servicesOf(driver))
  const answerTo = async (path: string, message: object) => {
    const { answer, method } = served.get(path) ?? {}
    try {
      if (!answer || !method) throw new GrpcRefusal('UNIMPLEMENTED', `The server does not implement the method ${path}`)
      const request = method.request.decode(method.request.encode(message)) as never
      return method.response.decode(method.response.encode(await answer(request, client))) as never
    } catch (error) {
      throw error instanceof GrpcRefusal ? new GrpcError(error.code, error.message, error).inGoWords() : error
    }
  }
  const ask = async (service: string, name: string, message: object, timeoutMs: number, signal: AbortSignal) => {
    signal.throwIfAborted()
    using scope = deadlineScope({ clock, ms: timeoutMs, reason: deadlineExceeded }, signal)
    return await orAborted(answerTo(`/csi.v1.${service}/${name}`, message), scope.signal)
  }
  return {
    call: (method, request, timeoutMs, signal) => {
      const { service, name } = wireMethod(method)
      return ask(service, name, request, timeoutMs, signal)
    },
    identity: (method, timeoutMs, signal) => ask('Identity', method, {}, timeoutMs, signal),
    nodeCapabilities: (timeoutMs, signal) => ask('Node', 'NodeGetCapabilities', {}, timeoutMs, signal),
    close: () => {},
  }
}
