/** Commands that need no server, or little of it: config, completion, plugin, options, alpha, and the proxy on this machine. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { type Custom, type Family, fails, says, servedRelease } from './steps.ts'

/** Asks the local proxy; node's own client, because proxies of the environment must not come between. */
function ask(port: number, url: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path: url, timeout: 5000 }, (answer) => {
      let body = ''
      answer.on('data', (chunk) => {
        body += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }))
    })
    request.on('timeout', () => request.destroy(new Error('no answer within 5 seconds')))
    request.on('error', reject)
  })
}

const proxied: Custom = {
  name: 'proxy serves the API on this machine and refuses what is dangerous',
  commands: ['proxy'],
  run: async (cluster) => {
    const running = cluster.follow(['proxy', '--port=0'])
    try {
      const [, found] = await running.until(/^Starting to serve on 127\.0\.0\.1:(\d+)\n/)
      const port = Number(found)
      assert.match((await ask(port, '/version')).body, new RegExp(`"gitVersion": "${servedRelease}\\b`))
      assert.match((await ask(port, '/api/v1/namespaces/client')).body, /"phase":\s*"Active"/)
      assert.equal((await ask(port, '/api/v1/namespaces/client/pods/nobody')).status, 404)
      assert.equal((await ask(port, '/api/v1/namespaces/client/pods/nobody/exec')).status, 403)
    } finally {
      running.end()
    }
  },
}

const config = { KUBECONFIG: 'own.kubeconfig' }

export const client: Family = {
  name: 'client',
  prepare: async (cluster) => {
    await fs.copyFile(path.join(cluster.dir, 'kubeconfig'), path.join(cluster.dir, config.KUBECONFIG))
    await fs.mkdir(path.join(cluster.dir, 'plugins'))
    await fs.writeFile(path.join(cluster.dir, 'plugins/kubectl-greet'), '#!/bin/sh\necho "hello $1"\n', { mode: 0o755 })
  },
  steps: [
    says('config current-context', 'skiff-e2e-commands', { env: config }),
    says('config get-contexts', /CURRENT +NAME +CLUSTER +AUTHINFO +NAMESPACE\n\* +skiff-e2e-commands +skiff-e2e-commands /, { env: config }),
    says(
      'config view --minify',
      [/server: https:\/\/127\.0\.0\.1:\d+/, /certificate-authority-data: DATA\+OMITTED/, /client-key-data: (DATA\+OMITTED|REDACTED)/],
      { env: config },
    ),
    says('config view --raw --flatten', /client-key-data: \w{40}/, { env: config }),
    says('config set-cluster far --server=https://far.example', 'Cluster "far" set.', { env: config }),
    // Debian's 1.20.2 crashes when it writes users down.
    says('config set-credentials somebody --token=secret', 'User "somebody" set.', { env: config, since: 21 }),
    says('config set-context away --cluster=far --user=somebody --namespace=client', 'Context "away" created.', { env: config }),
    says('config rename-context away abroad', 'Context "away" renamed to "abroad".', { env: config }),
    says('config use-context abroad', 'Switched to context "abroad".', { env: config }),
    fails('config use-context nowhere', /no context exists with the name: "nowhere"/, { env: config }),
    says('config set clusters.far.server https://farther.example', 'Property "clusters.far.server" set.', { env: config }),
    says('config get-clusters', [/^NAME$/m, /^far$/m, /^skiff-e2e-commands$/m], { env: config }),
    says('config get-users', 'NAME\nskiff-e2e-commands\nsomebody', { env: config, since: 21 }),
    says('config unset users.somebody', 'Property "users.somebody" unset.', { env: config, since: 21 }),
    says('config delete-context abroad', /deleted context abroad from /, { env: config }),
    says('config delete-cluster far', /deleted cluster far from /, { env: config }),
    says('config use-context skiff-e2e-commands', 'Switched to context "skiff-e2e-commands".', { env: config }),
    says('get namespace client -o name', 'namespace/client', { env: config }),

    says('completion bash', /__start_kubectl/),
    says('completion zsh', /#compdef.* kubectl|#compdef kubectl/),
    says('__complete get namespaces cli', /^client$/m, { since: 22 }),
    says('__complete describe configm', /^configmaps$/m, { since: 22 }),
    says('options', /--namespace/),
    says('plugin list', /plugins\/kubectl-greet/, { env: { PATH: `plugins:${process.env.PATH}` } }),
    says('alpha', '', { err: /No alpha commands are available in this version of kubectl/, since: 27, before: 35 }),
    says('alpha', /^ +kuberc +Manage kuberc/m, { since: 35 }),
    says('help', /Deploy Commands:/),
    proxied,
  ],
}
