/** Whether other machines reach the etcd of a cluster (L5, pure): with one that they do not reach, there is no further control plane elsewhere. */
import { isLoopback, isUnspecified, parseIp } from '#api/machinery/ip'
import { CommandError } from '#cli/exitCodes'

/** The first endpoint that leads to the machine itself, wherever it is used. */
export function ownEndpoint(endpoints: readonly string[]): string | undefined {
  return endpoints.find((url) => {
    const whole = url.includes('://') || url.startsWith('unix:') ? url : `http://${url}`
    if (!URL.canParse(whole)) return false
    const { protocol, hostname } = new URL(whole)
    const host = hostname.replace(/^\[|\]$|\.$/g, '')
    const address = parseIp(host)
    return (
      protocol === 'unix:' || host === 'localhost' || host.endsWith('.localhost') || (address !== undefined && (isLoopback(address) || isUnspecified(address)))
    )
  })
}

/** @param cause where the cluster keeps its objects */
export function notShared(cause: string): CommandError {
  return new CommandError('unmetPrerequisite', `${cause}: a control plane on another machine needs an etcd that both reach`, {
    hint: 'make the cluster over such an etcd: skiff up NAME --etcd-servers https://HOST:2379,… --apiserver-advertise-address IP',
  })
}
