"""What tests in network namespaces share."""
import subprocess
import sys


def skip(test, reason):
    """Ends the test as skipped, which ctest knows by the exit status."""
    print(f'SKIPPED: {test}: {reason}')
    sys.exit(77)


def ip(*words):
    """Runs iproute2's ip, which says what is wrong."""
    done = subprocess.run(['ip', *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f'ip {" ".join(words)}: {done.stderr.strip()}')
