/** What docs/testing.md promises, tried with the package's own build. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'

const root = path.resolve(import.meta.dirname, '../../..')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-testing-'))
after(() => fs.rmSync(folder, { recursive: true, force: true }))

test("X2 the page's test runs against the published skiff/testing", () => {
  assert.ok(fs.existsSync(path.join(root, 'dist/testing.mjs')), 'dist/ is missing: run make build')
  const page = fs.readFileSync(path.join(root, 'docs/testing.md'), 'utf8')
  const code = /```ts test\n([\s\S]*?)```/.exec(page)?.[1]
  assert.ok(code, 'docs/testing.md has a test')
  fs.mkdirSync(path.join(folder, 'node_modules'))
  fs.symlinkSync(root, path.join(folder, 'node_modules/skiff'))
  fs.writeFileSync(path.join(folder, 'page.mts'), code)
  const loader = pathToFileURL(path.join(root, 'node_modules/tsx/dist/loader.mjs')).href
  assert.equal(execFileSync(process.execPath, ['--import', loader, 'page.mts'], { cwd: folder, encoding: 'utf8' }).trim(), 'ok')
})
