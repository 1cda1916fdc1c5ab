"""EC2 as the sandbox answers it: moto's backend with capacity, prices, time and speed added."""
