/** The methods of etcd's services by name (L2, pure): `KV.Range`, `Watch.Watch`, … */
import { etcdProto } from '#grpc/proto/etcd'
import { loadService, type ServiceMethod } from '#grpc/protoMessage'

const services = ['KV', 'Watch', 'Lease', 'Cluster', 'Maintenance', 'Auth']
const methods: ReadonlyMap<string, ServiceMethod> = new Map(
  services.flatMap((service) => [...loadService(etcdProto, `etcdserverpb.${service}`)].map(([name, method]) => [`${service}.${name}`, method] as const)),
)

export function methodOf(name: string): ServiceMethod {
  const method = methods.get(name)
  if (!method) throw new Error(`etcd has no method ${name}`)
  return method
}
