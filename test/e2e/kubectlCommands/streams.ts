/** What reaches into containers that really run: run with a terminal's streams, logs, exec, attach, cp, port-forward, proxy and debug. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { eventually, type LocalCluster, type RunningKubectl } from '../support/localCluster.ts'
import { writeWebImage } from '../support/webImage.ts'
import { type Custom, type Family, fails, says } from './steps.ts'

const node = 'e2e-streams-node-1'
const image = '--image=web-app:1.0'
const serve = 'mkdir -p /www; echo home > /www/index.html; echo started; echo second; httpd -f -vv -p 8080 -h /www'
const echo = 'while read line; do echo "got $line"; done'

/** Starts kubectl, waits until it has printed what it must, does something, and ends it. */
async function during(
  cluster: LocalCluster,
  namespace: string,
  args: readonly string[],
  first: RegExp,
  act: (running: RunningKubectl) => Promise<void>,
): Promise<void> {
  const running = cluster.follow(['-n', namespace, ...args])
  try {
    await running.until(first)
    await act(running)
  } finally {
    running.end()
  }
}

/** Node's own client, because proxies of the environment must not come between. */
function page(port: number, url = '/'): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path: url, timeout: 5000, agent: false }, (answer) => {
      let body = ''
      answer.on('data', (chunk) => {
        body += chunk
      })
      answer.on('end', () => resolve(body.trim()))
    })
    request.on('timeout', () => request.destroy(new Error('no answer within 5 seconds')))
    request.on('error', reject)
  })
}

const followed: Custom = {
  name: 'logs -f prints new lines as they are written',
  commands: ['logs'],
  run: (cluster, namespace) =>
    during(cluster, namespace, ['logs', '-f', 'web'], /second/, async (logs) => {
      await cluster.must(['-n', namespace, 'exec', 'web', '--', 'sh', '-c', 'echo later > /proc/1/fd/1'])
      await logs.until(/later/)
    }),
}

const attached: Custom = {
  name: 'attach -i passes input to the running process and its output back',
  commands: ['attach'],
  run: (cluster, namespace) =>
    during(cluster, namespace, ['attach', '-i', 'echo'], /If you don't see a command prompt|^/, async (running) => {
      await eventually(
        'the echo',
        15_000,
        async () => {
          running.child.stdin?.write('hello\n')
          return running.text
        },
        (lines) => /got hello/.test(lines),
      )
    }),
}

const forwarded = (what: string, remote: number): Custom => ({
  name: `port-forward ${what} carries many connections`,
  commands: ['port-forward'],
  run: (cluster, namespace) =>
    during(cluster, namespace, ['port-forward', what, `:${remote}`], /Forwarding from 127\.0\.0\.1:(\d+) -> 8080/, async ({ text }) => {
      const port = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1])
      assert.deepEqual(await Promise.all(Array.from({ length: 5 }, () => page(port))), Array(5).fill('home'))
    }),
})

const proxied: Custom = {
  name: 'proxy reaches pods and services through the API server',
  commands: ['proxy'],
  run: (cluster, namespace) =>
    during(cluster, namespace, ['proxy', '--port=0'], /Starting to serve on 127\.0\.0\.1:\d+/, async ({ text }) => {
      const port = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1])
      assert.equal(await page(port, `/api/v1/namespaces/${namespace}/pods/web:8080/proxy/`), 'home')
      await eventually(
        'the page through the service',
        15_000,
        () => page(port, `/api/v1/namespaces/${namespace}/services/web:80/proxy/`),
        (text) => text === 'home',
      )
    }),
}

/** Debugs with a shell on standard input. The input stays open: its end would end the streams before the answer is through. */
const debugged = (name: string, args: readonly string[], line: string, want: RegExp): Custom => ({
  name,
  commands: ['debug'],
  since: 27,
  run: (cluster, namespace) =>
    during(cluster, namespace, ['debug', ...args, image, '-i', '--quiet', '--profile=general', '--', 'sh'], /^/, async (shell) => {
      shell.child.stdin?.write(`${line}\n`)
      await shell.until(want)
      shell.child.stdin?.end('exit\n')
    }),
})

const copied: Custom = {
  name: 'cp copies files and folders both ways, byte for byte',
  commands: ['cp'],
  run: async (cluster, namespace) => {
    const dir = path.join(cluster.dir, 'copied')
    await fs.mkdir(path.join(dir, 'sub'), { recursive: true })
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 251))
    await fs.writeFile(path.join(dir, 'sub/bytes'), bytes)
    await cluster.must(['cp', dir, `${namespace}/web:/tmp/there`])
    await cluster.must(['cp', `${namespace}/web:/tmp/there/sub/bytes`, path.join(dir, 'back')])
    assert.ok(bytes.equals(await fs.readFile(path.join(dir, 'back'))), 'the same bytes')
    // tar's warning may be missing: kubectl exits at the end of the archive.
    await cluster.kubectl(['cp', `${namespace}/web:/tmp/nothing`, path.join(dir, 'nothing')])
    await assert.rejects(fs.stat(path.join(dir, 'nothing')), /ENOENT/)
  },
}

export const streams: Family = {
  name: 'streams',
  real: true,
  prepare: async (cluster) => {
    const files = await writeWebImage(cluster.dir, ['1.0'])
    const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, ...files])
    assert.equal(code, 0, stderr)
  },
  steps: [
    says(`run web ${image} --labels=app=web --port=8080 --command -- sh -c '${serve}'`, 'pod/web created'),
    says('apply -f -', 'pod/echo created', {
      input: [
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'echo' },
          spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'echo', image: 'web-app:1.0', stdin: true, command: ['sh', '-c', echo] }] },
        },
      ],
    }),
    says('wait --for=condition=Ready pod/web pod/echo --timeout=30s', 'pod/web condition met\npod/echo condition met'),

    says('logs web', 'started\nsecond', { until: true }),
    says('logs web --tail=1 --timestamps', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z second$/m),
    says('logs -l app=web --prefix', '[pod/web/web] started\n[pod/web/web] second'),
    says('logs web --limit-bytes=7', 'started'),
    says('logs web --since=1h -c web', 'started\nsecond'),
    fails('logs web -c nobody', /container nobody is not valid for pod web/),
    fails('logs web -p', /\(BadRequest\): previous terminated container "web" in pod "web" not found/),
    fails('logs nobody', /\(NotFound\): pods "nobody" not found/),
    followed,

    says('exec web -- echo hi there', 'hi there'),
    says('exec -i web -- cat', 'from the input', { input: 'from the input' }),
    says(`exec web -- sh -c 'echo bad >&2; exit 7'`, '', { err: /^bad\ncommand terminated with exit code 7/, code: 7 }),
    fails('exec web -c nobody -- ls', /\(BadRequest\): container nobody is not valid for pod web/),
    fails('exec web -- nosuchprogram', /"nosuchprogram": executable file not found in \$PATH/),
    fails('exec nobody -- ls', /\(NotFound\): pods "nobody" not found/),
    attached,
    fails('attach nobody', /pods "nobody" not found/),
    copied,
    forwarded('pod/web', 8080),
    says('expose pod web --port=80 --target-port=8080', 'service/web exposed'),
    forwarded('service/web', 80),
    fails('port-forward pod/nobody 8080', /pods "nobody" not found/),
    proxied,

    says(`run asked ${image} --restart=Never -i --rm --quiet --command -- sh`, /from the script/, { input: 'echo from the script\nexit 3\n', code: 3 }),
    fails('get pod asked', /NotFound/, { until: true }),
    says(`run brief ${image} --restart=Never --command -- sh -c 'exit 4'`, 'pod/brief created'),
    says('get pod brief', /NAME +READY +STATUS +RESTARTS +AGE\nbrief +0\/1 +Error +0 /, { until: true }),

    says(`debug web ${image} -c inspector --profile=general -- sleep 600`, '', { since: 27 }),
    says(`get pod web -o jsonpath='{.status.ephemeralContainerStatuses[?(@.name=="inspector")].state}'`, /"running"/, { until: true, since: 27 }),
    says('exec web -c inspector -- echo from inside', 'from inside', { since: 27 }),
    debugged('debug -i talks to an ephemeral container', ['web', '-c', 'asked'], 'echo from $((40 + 2))', /from 42/),
    says('describe pod web', [/Ephemeral Containers:\n {2}inspector:/, /Status: +Running/], { since: 27 }),
    says('debug web --copy-to=web-copy --set-image=web=web-app:1.0 --share-processes --profile=general', '', { since: 27 }),
    says(`get pod web-copy -o jsonpath='{.spec.shareProcessNamespace} {.spec.containers[*].image}'`, 'true web-app:1.0', { since: 27 }),
    debugged('debug node/NAME sees the files of the node', [`node/${node}`], 'ls -d /host/etc', /^\/host\/etc$/m),
    says('get pods -o name', new RegExp(`^pod/node-debugger-${node}-\\w{5}$`, 'm'), { since: 27 }),
    says('delete pods --all --grace-period=1 --timeout=30s', [/pod "web" deleted/, /pod "echo" deleted/]),
  ],
}
