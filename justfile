# `just` lists these; each is a command that can be typed as well.

_default:
    @just --list --unsorted

# What needs no lab
test:
    tests/run --quick

# Everything, labs included
test-all:
    tests/run

# What CI runs
ci:
    .ci/run

# Formatting and lints
lint:
    git ls-files -z '*.rs' | xargs -0 rustfmt --check
    cargo clippy --workspace --all-targets --features labs -- -D warnings

# Measure against the least that SSH allows, and against peers (as root)
bench *ARGUMENTS:
    bench/run {{ARGUMENTS}}

# Write the generated pages and schemas
docs:
    UPDATE_DOCS=1 cargo test --test docs

# Write the README's picture from a real run
picture:
    docs/picture

# Licences, sources, advisories (needs cargo-deny and a network)
deny:
    cargo deny check

# Boot four hosts with faked GPUs and write hosts.yml
lab-up:
    tests/fleet/fleet setup
    tests/fleet/fleet up
    tests/fleet/fleet inventory >hosts.yml

# End them
lab-down:
    tests/fleet/fleet down

# Start a Kubernetes control plane with a node
cluster-up:
    tests/cluster/cluster setup
    tests/cluster/cluster up --node gpu1=10.0.0.2,gpus=2

# End it
cluster-down:
    tests/cluster/cluster down

# A static program and a Debian package, under target/package
package:
    packaging/deb

# Build the package, install it into a booted Debian, use it, remove it
package-check:
    packaging/check --build
