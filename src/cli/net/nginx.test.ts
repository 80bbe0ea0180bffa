import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { Ingress, IngressSpec } from '#api/gen/types/networking.v1'
import { printableData } from '#base/printable'
import { testCertificates } from '#testing/testCertificates'
import { describeNginx, findNginx } from './nginx.ts'
import type { Reader } from './reader.ts'

const ingress = (name: string, spec: IngressSpec): Ingress =>
  ({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name, namespace: 'shop' }, spec, status: {} }) as Ingress
const to = (name: string, number: number) => ({ service: { name, port: { number } } })

/** A cluster with the Service web, port 80, of two ready endpoints and one that is not, and the Service idle without any. */
function readerOf(ingresses: readonly Ingress[]): Reader {
  const services = ['web', 'idle'].map((name) => ({ metadata: { name, namespace: 'shop' }, spec: { ports: [{ name: 'http', port: 80 }] } }))
  const endpoints = [
    { addresses: ['10.244.0.5'], conditions: { ready: true } },
    { addresses: ['fd00::5'], conditions: { ready: true } },
    { addresses: ['10.244.0.7'], conditions: { ready: false } },
  ]
  return {
    get: async (path: string) => {
      const name = path.split('/').at(-1)
      return { found: [...ingresses, ...services].find(({ metadata }) => metadata.name === name) }
    },
    list: async (path: string, query: Record<string, string> = {}) => {
      if (path.endsWith('/ingresses')) return { found: ingresses }
      return { found: query.labelSelector === 'kubernetes.io/service-name=web' ? [{ endpoints, ports: [{ name: 'http', port: 8080 }] }] : [] }
    },
  } as unknown as Reader
}

const webApp = ingress('web-app', {
  tls: [{ hosts: ['web.example.com'], secretName: 'web-tls' }],
  rules: [
    {
      host: 'web.example.com',
      http: {
        paths: [
          { path: '/', pathType: 'Prefix', backend: to('web', 80) },
          { path: '/api', pathType: 'Prefix', backend: to('web', 80) },
          { path: '/health', pathType: 'Exact', backend: to('idle', 80) },
        ],
      },
    },
  ],
})

test('ING-03 an Ingress becomes upstreams of its ready endpoints and a server of its host, with TLS and a location for each path', async () => {
  const found = await findNginx(readerOf([webApp]), 'shop', 'web-app', '/etc/nginx/ssl')
  assert.equal(
    describeNginx(printableData(found)),
    `events {}

http {
  upstream shop_web_80 {
    server 10.244.0.5:8080;
    server [fd00::5]:8080;
  }

  server {
    listen 80;
    listen 443 ssl;
    ssl_certificate /etc/nginx/ssl/web.example.com.crt;
    ssl_certificate_key /etc/nginx/ssl/web.example.com.key;
    server_name web.example.com;

    location / {
      proxy_pass http://shop_web_80;
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
    }

    location = /api {
      proxy_pass http://shop_web_80;
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
    }

    location /api/ {
      proxy_pass http://shop_web_80;
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
    }

    location = /health {
      # Service shop/idle has no ready endpoint
      return 503;
    }
  }
}
`,
  )
})

const odd = ingress('odd', {
  defaultBackend: to('web', 80),
  rules: [
    {
      host: '*.example.com',
      http: {
        paths: [
          { path: '/a b;{"}\\$x', pathType: 'ImplementationSpecific', backend: to('web', 80) },
          { path: '/a\n} evil {', pathType: 'Exact', backend: to('web', 80) },
          { path: '/missing', pathType: 'Exact', backend: to('web', 81) },
          { path: '/resource', pathType: 'Exact', backend: { resource: { kind: 'Bucket', name: 'b' } } },
        ],
      },
    },
    { host: 'empty.example.com' },
  ],
})

test('ING-03 a host with a wildcard is one label, odd paths are quoted or left out, and backends that cannot be served say why', async () => {
  const found = await findNginx(readerOf([webApp, odd]), 'shop', undefined, '/etc/nginx/ssl')
  const [configuration, { ingresses }] = [describeNginx(found), found]
  assert.deepEqual(ingresses, ['shop/web-app', 'shop/odd'])
  for (const part of [
    'server_name "~^[^.]+\\\\.example\\\\.com$";',
    'location "/a b;{\\"}\\\\$x" {',
    '# a path with control characters is left out',
    '# Service shop/web has no port 81',
    '# the backend is a resource, not a Service',
    'listen 80 default_server;',
    'server_name _;',
  ])
    assert.ok(configuration.includes(part), `${part} is not in ${configuration}`)
  assert.ok(!configuration.includes('evil'))
})

const nginx = '/usr/sbin/nginx'

test('ING-03 nginx accepts the configuration', { skip: fs.existsSync(nginx) ? false : 'needs nginx' }, async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-nginx-'))
  try {
    const { cert, key } = await testCertificates('CN=web.example.com', ['web.example.com'])
    fs.writeFileSync(path.join(dir, 'web.example.com.crt'), cert)
    fs.writeFileSync(path.join(dir, 'web.example.com.key'), key)
    const configuration = describeNginx(await findNginx(readerOf([webApp, odd]), 'shop', undefined, dir))
    const file = path.join(dir, 'nginx.conf')
    // The directories of its package may be missing.
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}/${kind};`)
    const within = configuration.replace('http {', `http {\naccess_log off;\n${places.join('\n')}`)
    fs.writeFileSync(file, `pid ${dir}/nginx.pid;\nerror_log stderr;\n${within}`)
    const { stderr } = await promisify(execFile)(nginx, ['-t', '-p', dir, '-c', file])
    assert.match(stderr, /test is successful/)
  } finally {
    fs.rmSync(dir, { recursive: true })
  }
})
