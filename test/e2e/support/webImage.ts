/** The web application of the reference documents as an image: busybox' httpd on port 8080 that answers with its version and its pod's name. */
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createExec } from '../../../src/host/exec.ts'
import { busyboxImage } from '../../../src/kubelet/images/busyboxImage.ts'
import { tar } from '../../../src/kubelet/images/ociTar.ts'

/** Writes `web-app:<version>` as a tar and returns the file. The pod's command has the program. */
export async function writeWebImage(dir: string, versions: readonly string[]): Promise<string[]> {
  return Promise.all(
    versions.map(async (version) => {
      const file = path.join(dir, `web-app-${version}.tar`)
      await fs.writeFile(file, await busyboxImage(createExec(), [`docker.io/library/web-app:${version}`]))
      return file
    }),
  )
}

/** The same in the form of `docker save`: its manifest.json names the configuration and the layers. Containers run as `user`. Returns the file. */
export async function writeDockerArchive(dir: string, tag: string, user = ''): Promise<string> {
  const programs = ['sh', 'httpd', 'hostname', 'id', 'mkdir', 'sleep', 'wget']
  const layer = tar([
    { path: 'bin/', type: 'directory' },
    { path: 'bin/busybox', type: 'file', mode: 0o755, data: await fs.readFile('/bin/busybox') },
    ...programs.map((program) => ({ path: `bin/${program}`, type: 'symlink' as const, target: 'busybox' })),
  ])
  const diffId = `sha256:${createHash('sha256').update(layer).digest('hex')}`
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const config = json({
    architecture: 'amd64',
    os: 'linux',
    config: { Env: ['PATH=/bin'], User: user },
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{}],
  })
  const file = path.join(dir, 'docker.tar')
  await fs.writeFile(
    file,
    tar([
      { path: 'config.json', type: 'file', data: config },
      { path: 'layer.tar', type: 'file', data: layer },
      { path: 'manifest.json', type: 'file', data: json([{ Config: 'config.json', RepoTags: [tag], Layers: ['layer.tar'] }]) },
    ]),
  )
  return file
}

/** Serves until SIGTERM; the log has a line per request. */
export const webCommand = [
  'sh',
  '-c',
  'mkdir -p /www && echo "$VERSION $(hostname)" > /www/index.html && trap "exit 0" TERM; httpd -f -vv -p 8080 -h /www & wait',
]

/** The Deployment and Service of the reference documents, with the image that was loaded. */
export function webManifests(image: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web-app' },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: {
              containers: [
                {
                  name: 'app',
                  image,
                  command: webCommand,
                  env: [{ name: 'VERSION', value: 'one' }],
                  ports: [{ containerPort: 8080 }],
                  readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
                },
              ],
            },
          },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web-service' },
        spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }], type: 'LoadBalancer' },
      },
    ],
  })
}
