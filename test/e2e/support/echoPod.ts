/** A pod that says who it is and who asks, over HTTP and UDP and both address families. It runs the host's Node.js, mounted from the host. */
export const echoPorts = { http: 8080, udp: 8081 } as const

const program = `
const os = require('os')
const plain = (address) => address.replace('::ffff:', '')
require('http').createServer((request, response) => response.end(os.hostname() + ' ' + plain(request.socket.remoteAddress))).listen(${echoPorts.http}, '::')
const socket = require('dgram').createSocket('udp6')
socket.on('message', (_, { address, port }) => socket.send(os.hostname() + ' ' + plain(address), port, address))
socket.bind(${echoPorts.udp}, '::')
process.on('SIGTERM', () => process.exit(0))
`

const shared = ['/usr', '/lib', '/lib64']

/** Its image is the web image, version 1.0, whose tools can ask others. */
export function echoPod(name: string, nodeName: string, { spec = {}, ports = [] }: { readonly spec?: object; readonly ports?: readonly object[] } = {}) {
  const container = {
    name: 'app',
    image: 'web-app:1.0',
    command: [process.execPath, '-e', program],
    ports,
    volumeMounts: shared.map((mountPath, i) => ({ name: `host-${i}`, mountPath, readOnly: true })),
    readinessProbe: { tcpSocket: { port: echoPorts.http }, periodSeconds: 1 },
  }
  const volumes = shared.map((path, i) => ({ name: `host-${i}`, hostPath: { path } }))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'echo', pod: name } },
    spec: { nodeName, hostname: name, terminationGracePeriodSeconds: 0, containers: [container], volumes, ...spec },
  }
}
