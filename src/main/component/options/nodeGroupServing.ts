/** The flags of `skiff nodegroup serve` (L5). Upstream: cloudprovider/externalgrpc/examples/external-grpc-cloud-provider-service/main.go of cluster-autoscaler (1.36). */
import { isIP } from 'node:net'
import { isLoopback, parseIp } from '#api/machinery/ip'
import { text, UsageError } from '../../apiserver/options/flags.ts'
import { authoritiesOf, pairOf, readFollowed } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

export const nodeGroupServing = optionGroup({
  name: 'Serving',
  flags: {
    cacert: text('The authorities that sign the certificates of clients'),
    cert: text('The certificate that clients see; without one, the address must be a loopback one'),
    key: text('The key of the certificate'),
    listen: text('The address to listen on', '127.0.0.1:8086'),
    name: text('The cluster; empty: the only one'),
  },
  async settings(values, context) {
    const { host = '', port = 0 } = listenerOf(values.listen) ?? {}
    const files = [values.cert, values.key, values.cacert]
    const isSecure = files.some((file) => file !== '')
    const faults = [
      ...(host === ''
        ? [`--listen: ${JSON.stringify(values.listen)} must be an IP address or localhost, a colon and a port`]
        : isSecure || isLoopbackText(host)
          ? []
          : [`--listen: clients of ${host} need certificates: give --cert, --key and --cacert, or listen on 127.0.0.1`]),
      ...(isSecure && files.includes('') ? ['--cert, --key and --cacert must be given together'] : []),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    const certificate = await readFollowed(files, context, ([cert = '', key = '', ca = '']) => ({ ...pairOf([cert, key]), clientCa: authoritiesOf([ca]) }))
    return { host, port, cluster: values.name, certificate }
  },
})

/** Undefined for a text that names no address and port. Port 0: one that is free. */
function listenerOf(given: string): { readonly host: string; readonly port: number } | undefined {
  const [, inBrackets, plain, digits] = /^(?:\[([^[\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(given) ?? []
  const host = plain === 'localhost' ? '127.0.0.1' : (inBrackets ?? plain ?? '')
  return isIP(host) === 0 || Number(digits) > 65_535 ? undefined : { host, port: Number(digits) }
}

function isLoopbackText(text: string): boolean {
  const address = parseIp(text)
  return address !== undefined && isLoopback(address)
}
