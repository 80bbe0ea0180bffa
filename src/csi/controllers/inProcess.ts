/** Calls a driver of this process as one behind a socket (L3): messages lose what the wire does not carry, and errors have Go's words. */
import { GrpcError } from '#grpc/grpcError'
import { GrpcRefusal, implementationsOf } from '#grpc/grpcService'
import type { CsiDriver } from '../server/csiTypes.ts'
import { servicesOf } from '../server/serveCsi.ts'
import { type CsiConnection, wireMethod } from './driver.ts'

const client = { metadata: () => undefined, commonName: () => undefined }

export function connectInProcess(driver: CsiDriver): CsiConnection {
  const served = implementationsOf(servicesOf(driver))
  const ask = async (service: string, name: string, message: object) => {
    const path = `/csi.v1.${service}/${name}`
    const { answer, method } = served.get(path) ?? {}
    try {
      if (!answer || !method) throw new GrpcRefusal('UNIMPLEMENTED', `The server does not implement the method ${path}`)
      const request = method.request.decode(method.request.encode(message)) as never
      return method.response.decode(method.response.encode(await answer(request, client))) as never
    } catch (error) {
      throw error instanceof GrpcRefusal ? new GrpcError(error.code, error.message, error).inGoWords() : error
    }
  }
  return {
    call: (method, request) => {
      const { service, name } = wireMethod(method)
      return ask(service, name, request)
    },
    identity: (method) => ask('Identity', method, {}),
    nodeCapabilities: () => ask('Node', 'NodeGetCapabilities', {}),
    close: () => {},
  }
}
